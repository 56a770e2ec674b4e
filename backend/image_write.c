#include <elf.h>
#include <libelf.h>
#include <string.h>

#include "backend/image_sections.h"
#include "base/array.h"

// Every section but the first, in file order, and last the section names.
enum {
#define X(field, type, section) TABLE_##field,
  WEFT_IMAGE_TABLES(X) TABLE_COUNT,
#undef X
  SECTION_COUNT = 3 + TABLE_COUNT + 3 // header, machine, defects; tables; symbols, their names, section names
};

typedef struct section_t {
  const char* name;
  const void* data;
  size_t size;
  size_t record; // bytes, 0 for text
  Elf64_Word type, link, info;
} section_t;

typedef struct builder_t {
  weft_allocator_t allocator;
  section_t section[SECTION_COUNT];
  size_t count;
  WEFT_ARRAY(char) names; // of sections
  WEFT_ARRAY(Elf64_Sym) symbols;
  WEFT_ARRAY(char) symbol_names;
} builder_t;

static weft_status_t elf_fault(const char* what) {
  return weft_error(IO, "cannot %s the image's ELF file: %s", what, elf_errmsg(-1));
}

static void add(builder_t* b, const char* name, const void* data, size_t count, size_t record) {
  b->section[b->count++] =
      (section_t){.name = name, .data = data, .size = count * record, .record = record, .type = SHT_PROGBITS};
}

// The index that a section will have in the file (0 is the empty section that ELF begins with).
static Elf64_Half section_index(const builder_t* b, const char* name) {
  for (size_t s = 0; s < b->count; ++s)
    if (!strcmp(b->section[s].name, name)) return (Elf64_Half)(s + 1);
  return SHN_UNDEF;
}

// Every kernel is a symbol, an object made of its records in the node list; value and size are bytes of .weft.nodes.
static weft_status_t add_symbols(builder_t* b, const weft_image_t* image) {
  Elf64_Half nodes = section_index(b, ".weft.nodes");
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(b->allocator, &b->symbols, (Elf64_Sym){0}));
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(b->allocator, &b->symbol_names, '\0'));
  for (size_t k = 0; k < image->kernels_count; ++k) {
    const weft_image_kernel_t* kernel = &image->kernels[k];
    const char* name = weft_image_string(image, kernel->name);
    size_t length = strlen(name) + 1, first = b->symbol_names.count;
    WEFT_RETURN_IF_ERROR(WEFT_ARRAY_RESERVE(b->allocator, &b->symbol_names, first + length));
    memcpy(b->symbol_names.data + first, name, length);
    b->symbol_names.count += length;
    Elf64_Sym symbol = {.st_name = (Elf64_Word)first,
                        .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
                        .st_shndx = nodes,
                        .st_value = (Elf64_Addr)kernel->tiles * sizeof(uint32_t),
                        .st_size = (Elf64_Xword)kernel->gy * (Elf64_Xword)kernel->gx * sizeof(uint32_t)};
    WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(b->allocator, &b->symbols, symbol));
  }
  add(b, ".symtab", b->symbols.data, b->symbols.count, sizeof(Elf64_Sym));
  section_t* table = &b->section[b->count - 1];
  table->type = SHT_SYMTAB;
  table->link = (Elf64_Word)b->count + 1; // the next section
  table->info = 1;                        // the first global symbol
  add(b, ".strtab", b->symbol_names.data, b->symbol_names.count, 1);
  b->section[b->count - 1].type = SHT_STRTAB;
  return weft_ok();
}

static weft_status_t list_sections(builder_t* b, const weft_image_t* image) {
  add(b, WEFT_IMAGE_HEADER_SECTION, &image->header, 1, sizeof(image->header));
  add(b, WEFT_IMAGE_MACHINE_SECTION, image->machine_xml, image->machine_xml_size, 1);
  add(b, WEFT_IMAGE_DEFECTS_SECTION, image->defects_text, image->defects_text_size, 1);
#define X(field, type, section) add(b, section, image->field, image->field##_count, sizeof(type));
  WEFT_IMAGE_TABLES(X)
#undef X
  WEFT_RETURN_IF_ERROR(add_symbols(b, image));
  add(b, ".shstrtab", NULL, 0, 1);
  section_t* last = &b->section[b->count - 1];
  last->type = SHT_STRTAB;
  WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(b->allocator, &b->names, '\0'));
  for (size_t s = 0; s < b->count; ++s)
    for (const char* c = b->section[s].name;; ++c) {
      WEFT_RETURN_IF_ERROR(WEFT_ARRAY_PUSH(b->allocator, &b->names, *c));
      if (!*c) break;
    }
  last->data = b->names.data;
  last->size = b->names.count;
  return weft_ok();
}

static weft_status_t add_section(Elf* elf, const section_t* section, Elf64_Word name) {
  Elf_Scn* scn = elf_newscn(elf);
  if (!scn) return elf_fault("add a section to");
  Elf_Data* data = elf_newdata(scn);
  if (!data) return elf_fault("add data to");
  data->d_buf = section->size ? (void*)section->data : NULL; // libelf only reads it
  data->d_size = section->size;
  data->d_align = WEFT_IMAGE_ALIGNMENT;
  data->d_type = section->type == SHT_SYMTAB ? ELF_T_SYM : ELF_T_BYTE;
  data->d_version = EV_CURRENT;
  Elf64_Shdr* header = elf64_getshdr(scn);
  if (!header) return elf_fault("describe a section of");
  header->sh_name = name;
  header->sh_type = section->type;
  header->sh_entsize = section->record > 1 ? section->record : 0;
  header->sh_addralign = WEFT_IMAGE_ALIGNMENT;
  header->sh_link = section->link;
  header->sh_info = section->info;
  return weft_ok();
}

static weft_status_t write_elf(const builder_t* b, Elf* elf) {
  Elf64_Ehdr* header = elf64_newehdr(elf);
  if (!header) return elf_fault("begin");
  header->e_ident[EI_DATA] = ELFDATA2LSB;
  header->e_type = ET_NONE; // no program of any processor: nothing but weft loads it
  header->e_machine = EM_NONE;
  header->e_version = EV_CURRENT;
  header->e_shstrndx = (Elf64_Half)b->count;
  Elf64_Word name = 1;
  for (size_t s = 0; s < b->count; ++s) {
    WEFT_RETURN_IF_ERROR(add_section(elf, &b->section[s], name));
    name += (Elf64_Word)strlen(b->section[s].name) + 1;
  }
  if (elf_update(elf, ELF_C_WRITE) < 0) return elf_fault("write");
  return weft_ok();
}

static weft_status_t write_file(const builder_t* b, const char* path) {
  if (elf_version(EV_CURRENT) == EV_NONE) return elf_fault("begin");
  weft_file_writer_t writer;
  WEFT_RETURN_IF_ERROR(weft_file_writer_open(b->allocator, path, &writer));
  Elf* elf = elf_begin(fileno(writer.stream), ELF_C_WRITE, NULL);
  weft_status_t status = elf ? write_elf(b, elf) : elf_fault("begin");
  if (elf) elf_end(elf);
  if (!status) return weft_file_writer_commit(&writer);
  weft_file_writer_abandon(&writer);
  return weft_status_annotate(status, "%s", path);
}

weft_status_t weft_image_write(weft_allocator_t allocator, const weft_image_t* image, const char* path) {
  builder_t builder = {.allocator = allocator};
  weft_status_t status = list_sections(&builder, image);
  if (!status) status = write_file(&builder, path);
  WEFT_ARRAY_FREE(allocator, &builder.names);
  WEFT_ARRAY_FREE(allocator, &builder.symbols);
  WEFT_ARRAY_FREE(allocator, &builder.symbol_names);
  return status;
}
